"""Commands that only run another one: nice, env, numactl, nsys, `uv run`, …

`nsys profile -o x python train.py` -> `python train.py`

Source: each command's own help and manual page.
"""

from __future__ import annotations

from collections.abc import Mapping

from admission.detect.launchers.step import Line, Step
from admission.detect.words import Word, words

_NSYS = (
    "-o --output -t --trace -s --sample -c --capture-range -y --delay -d --duration -w "
    "--show-output "
    "-f --force-overwrite -x --stop-on-exit -e --env-var -b --backtrace -n --inherit-environment "
    "-p --nvtx-capture --capture-range-end --kill --wait --session-new --session --start-later "
    "--cuda-memory-usage --cuda-graph-trace --cuda-event-trace --cuda-um-cpu-page-faults "
    "--cuda-um-gpu-page-faults --cudabacktrace --gpu-metrics-device --gpu-metrics-devices "
    "--gpu-metrics-frequency --gpu-metrics-set --nic-metrics --export --stats --python-sampling "
    "--python-sampling-frequency --python-backtrace --pytorch --trace-fork-before-exec --cpuctxsw "
    "--event-sample --mpi-impl --osrt-threshold --process-scope --sampling-period "
    "--samples-per-backtrace "
    "--flush-on-cudaprofilerstop --run-as --clock-frequency-changes --nvtx-domain-include "
    "--nvtx-domain-exclude --resolve-symbols --auto-report-name"
)
_NCU = (
    "-o --export -k --kernel-name -c --launch-count -s --launch-skip --set --section --metrics "
    "--target-processes --target-processes-filter --nvtx-include --nvtx-exclude --replay-mode "
    "--cache-control --clock-control --kernel-name-base --launch-skip-before-match --log-file "
    "--devices --profile-from-start --graph-profiling --range-filter --kernel-id --import-source"
)
_CONDA = "-n --name -p --prefix --cwd -e --env-file"
_UV = (
    "--with --with-editable --with-requirements --python -p --extra --group --env-file --project "
    "--directory --index --index-url --extra-index-url --default-index --find-links -f --package "
    "--from --cache-dir --config-file --no-group --only-group --refresh-package --index-strategy"
)

WRAPPERS: Mapping[str, frozenset[str]] = {
    name: frozenset(words(flags))
    for name, flags in {
        "exec": "-a",
        "command": "",
        "builtin": "",
        "env": "-u --unset -C --chdir -S",
        "nice": "-n --adjustment",
        "nohup": "",
        "setsid": "",
        "stdbuf": "-i -o -e",
        "unbuffer": "",
        "timeout": "-k -s --kill-after --signal",
        "time": "-f -o",
        "sudo": "-u -g",
        "doas": "-u -C",
        "gosu": "",
        "su-exec": "",
        "setpriv": "--reuid --regid --groups --inh-caps --bounding-set",
        "chroot": "",
        "capsh": "",
        "tini": "-p -e",
        "tini-static": "-p -e",
        "dumb-init": "-r --rewrite",
        "catatonit": "",
        "s6-setuidgid": "",
        "s6-env": "",
        "with-contenv": "",
        "chpst": "-u -U -b -e -m -o -p",
        "catchsegv": "",
        "ionice": "-c -n",
        "chrt": "",
        "taskset": "",
        "numactl": "-N -m -C -i -p --cpunodebind --membind --physcpubind --interleave --preferred",
        "hwloc-bind": "",
        "prlimit": "-p",
        "flock": "-w --timeout -E",
        "xvfb-run": "-n -s -e",
        "opentelemetry-instrument": "",
        "ddtrace-run": "",
        "kernprof": "-o",
        "nvidia_entrypoint.sh": "",
        "nvidia-entrypoint.sh": "",
        "py-spy": "-o -r",
        "ncu": _NCU,
        "nv-nsight-cu-cli": _NCU,
        "nvprof": "-o --log-file -f --profile-from-start -u --print-gpu-trace-unit",
        "compute-sanitizer": "--tool --log-file --save --target-processes --kernel-name",
        "cuda-memcheck": "--tool --log-file --save",
        "rocprof": "-o -i --timestamp",
        "strace": "-o -e -p -s",
        "ltrace": "-o -e",
        "cgexec": "-g",
        "systemd-run": "-p --unit --uid",
        "xargs": "-n -I -P -d -L -s -a -E --max-procs",
    }.items()
}
"""Wrapper -> its flags that take a value of their own."""

SUBCOMMANDS: Mapping[str, tuple[str, ...]] = {
    "uv": ("run",),
    "uvx": (),
    "pipx": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "rye": ("run",),
    "hatch": ("run",),
    "pixi": ("run",),
    "conda": ("run",),
    "mamba": ("run",),
    "micromamba": ("run",),
    "nsys": ("profile", "launch"),
    "py-spy": ("record",),
    "memray": ("run",),
    "perf": ("record", "stat"),
    "dotenv": ("run",),
    "doppler": ("run",),
    "op": ("run",),
    "singularity": ("exec",),
    "apptainer": ("exec",),
    "coverage": ("run",),
    "spack": ("build-env",),
}
"""Command -> those of its subcommands that run another command; none: it always does."""

_WITH_VALUE: Mapping[str, frozenset[str]] = {
    name: frozenset(words(flags))
    for name, flags in {
        "conda": _CONDA,
        "mamba": _CONDA,
        "micromamba": _CONDA,
        "uv": _UV,
        "uvx": _UV,
        "pipx": "--spec --python --pip-args",
        "poetry": "-C --directory -P --project",
        "pdm": "-p --project",
        "hatch": "-e --env",
        "pixi": "-e --environment --manifest-path -p",
        "nsys": _NSYS,
        "py-spy": "-o -r -d -f",
        "memray": "-o --output",
        "perf": "-o -e -F -g -p",
        "dotenv": "-f --file",
        "doppler": "-p -c --project --config",
        "op": "--env-file --account",
        "singularity": "-B --bind --env --env-file -H --home --pwd -W --workdir --overlay -S",
        "apptainer": "-B --bind --env --env-file -H --home --pwd -W --workdir --overlay -S",
        "coverage": "--rcfile --source --omit --include --data-file",
    }.items()
}
_PIPED = Word(text="$(input of xargs)", unresolved=("$(input of xargs)",))
"""Stands for the words that `xargs` adds."""
_POSITIONALS: Mapping[str, int] = {
    "timeout": 1,
    "taskset": 1,
    "gosu": 1,
    "su-exec": 1,
    "chroot": 1,
    "s6-setuidgid": 1,
    "chrt": 1,
    "flock": 1,
    "hwloc-bind": 1,
    "singularity": 1,
    "apptainer": 1,
}
"""Words of their own before the command: a duration, a mask, a user, an image."""
_PYTHON = Word(text="python")
_RUNS_PYTHON = frozenset({"coverage", "kernprof", "memray"})
"""What follows is an argument of Python."""
SCRIPTED: Mapping[str, frozenset[str]] = {
    "script": frozenset({"-c", "--command"}),
    "su": frozenset({"-c", "--command"}),
    "runuser": frozenset({"-c", "--command"}),
}
"""Command -> the flags whose value is a script."""


def unwrap(line: Line) -> Step | None:
    """Return the command line inside a wrapper, or None if this is none."""
    rest = line.words[1:]
    name = line.name
    if name in SUBCOMMANDS:
        subcommands = SUBCOMMANDS[name]
        if subcommands and (not rest or rest[0].text not in subcommands):
            return None
        rest = rest[1:] if subcommands else rest
    with_value = WRAPPERS.get(name, frozenset()) | _WITH_VALUE.get(name, frozenset())
    assigned: dict[str, tuple[Word, ...] | None] = {}
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        text = rest[at].text
        if text in ("-m", "--module") and name in ("uv", "coverage", "memray", "kernprof"):
            return Step(rest=(_PYTHON, Word(text="-m"), *rest[at + 1 :]))
        if name == "env" and text in ("-u", "--unset") and at + 1 < len(rest):
            assigned[rest[at + 1].text] = None
        at += 2 if text in with_value else 1
        if text == "--":
            break
    at += _POSITIONALS.get(name, 0)
    while name in ("env", "sudo", "doas") and at < len(rest) and "=" in rest[at].text:
        variable, _, value = rest[at].text.partition("=")
        assigned[variable] = (rest[at].part(value),)
        at += 1
    if not rest[at:]:
        return None
    more = (_PIPED,) if name == "xargs" else ()
    before = (_PYTHON,) if name in _RUNS_PYTHON else ()
    return Step(rest=(*before, *rest[at:], *more), assigned=assigned)


def unwrap_entry(line: Line) -> Step | None:
    """Return the command that an image's entry script is given, which it runs in the end.

    By convention: `exec "$@"`, docs.docker.com "Best practices", ENTRYPOINT.
    """
    return Step(rest=line.words[1:]) if line.words[1:] else None


def is_entry_script(name: str) -> bool:
    """Return whether *name* is one of an image's entry script: `docker-entrypoint.sh`."""
    return name.removesuffix(".sh").endswith(("entrypoint", "entry_point", "entry-point"))


def unwrap_scripted(line: Line) -> Step | None:
    """Return the script in `script -c SCRIPT`, `su USER -c SCRIPT`."""
    for index, word in enumerate(line.words[1:-1], start=1):
        is_last_letter = word.text[:1] == "-" and word.text[1:2] != "-" and word.text[-1:] == "c"
        if word.text in SCRIPTED[line.name] or is_last_letter:
            return Step(rest=(Word(text="sh"), Word(text="-c"), line.words[index + 1]))
    return None
