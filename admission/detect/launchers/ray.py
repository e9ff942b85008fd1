"""`ray job submit … -- COMMAND`: the command that the job runs.

Source: ray-project/ray@0718d5b `python/ray/dashboard/modules/job/cli.py`. What a cluster that
`ray start` makes is given later is not in the object.
"""

from __future__ import annotations

from admission.detect.launchers.step import Line, Step, options_of, split_options
from admission.detect.words import Word

OPTIONS = options_of(
    "address submission_id runtime_env runtime_env_json working_dir metadata_json "
    "entrypoint_num_cpus entrypoint_num_gpus entrypoint_memory entrypoint_resources "
    "entrypoint_label_selector log_style log_color headers verify job_id py_modules",
    "no_wait verbose v",
)
_WAITS = Word(text="true")
"""Stands for a cluster that waits for jobs."""


def unwrap(line: Line) -> Step | None:
    """Return the command of a submitted job."""
    texts = [word.text for word in line.words[1:3]]
    if texts != ["job", "submit"]:
        return Step(rest=(_WAITS,)) if texts[:1] != ["submit"] else None
    _, rest = split_options(line.inner(*line.words[2:]), OPTIONS)
    if rest and rest[0].text == "--":
        rest = rest[1:]
    return Step(rest=rest) if rest else None
