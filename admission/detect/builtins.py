"""What a shell's own commands do to its variables, arguments and folder.

    words, Scope -> (the scope, changed)

Nothing is run: a value that a builtin makes out of input is unknown, and so is everything after
`source` and `eval` of text that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from admission.detect.scope import Scope
from admission.detect.words import Word

DECLARING = frozenset({"export", "declare", "readonly", "local", "typeset"})
LOCAL = frozenset({"local", "declare", "typeset"})
"""Inside a function, what these set ends with it."""
_HARMLESS_FILES = frozenset(
    {
        "activate",
        "conda.sh",
        "mamba.sh",
        "micromamba.sh",
        ".bashrc",
        "bash.bashrc",
        ".profile",
        ".bash_profile",
        "profile",
        "setvars.sh",
        "set_nccl_env.sh",
        "nccl-env-profile.sh",
        "nccl-env-profile-ll128.sh",
    }
)
"""Files to source that set paths and what a library is told, and nothing of a job's own.

The last ones set NCCL_ variables for Google's networks: GoogleCloudPlatform/
container-engine-accelerators, gpudirect-tcpxo and gpudirect-rdma.
"""
_HARMLESS_VARIABLES = frozenset({"$NCCL_INIT_SCRIPT", "${NCCL_INIT_SCRIPT}"})
"""Names of such files: AI-Hypercomputer/gpu-recipes, src/helm-charts/a4/jobset."""
HARMLESS_SUBSTITUTIONS = ("$(conda ", "$(mamba ", "$(micromamba ", "$(ssh-agent", "$(pyenv ")
"""Text to `eval` that does no more."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SETS = re.compile(r"(?<![=!<>])=(?!=)|\+\+|--|<<=|>>=")
_ELEMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[[^\]]*\]\+?=")


def names_in(text: str) -> Iterator[str]:
    """Yield every word of *text* that could be a variable's name."""
    return (match.group() for match in _NAME.finditer(text))


def names_set_by(arithmetic: str) -> tuple[str, ...]:
    """Return the variables that an arithmetic expression may set."""
    return tuple(dict.fromkeys(names_in(arithmetic))) if _SETS.search(arithmetic) else ()


def element_set_by(word: Word) -> str | None:
    """Return the array that `NAME[…]=value` sets, or None if it is no such assignment."""
    match = _ELEMENT.match(word.text)
    return match.group(1) if match else None


def changes_values(words: tuple[Word, ...]) -> bool:
    """Return whether `declare` is told to compute, or to mean another variable."""
    return words[0].text != "export" and bool(set(_flags(words)) & set("ilun"))


def _flags(words: tuple[Word, ...]) -> str:
    return "".join(word.text[1:] for word in words if word.text[:1] == "-")


def is_harmless_file(path: str) -> bool:
    """Return whether to source the file at *path* sets nothing of a job's own."""
    return path.rpartition("/")[2] in _HARMLESS_FILES or path in _HARMLESS_VARIABLES


def apply(words: tuple[Word, ...], scope: Scope) -> None:
    """Do to *scope* what the command *words* does to its shell."""
    effect = _EFFECTS.get(words[0].text)
    if effect is not None:
        effect(words[1:], scope)
    if words[0].text in DECLARING and changes_values(words) and "n" in _flags(words):
        scope.forget()


def _names(words: tuple[Word, ...], scope: Scope) -> None:
    """`read`, `mapfile`, `getopts`: every word that could be a name is one."""
    known = [name for word in words if word.is_known for name in names_in(word.text)]
    scope.doubt((*known, "REPLY", "MAPFILE", "OPTARG", "OPTIND"))
    _hidden(words, scope)


def _printf(words: tuple[Word, ...], scope: Scope) -> None:
    if words and words[0].text.startswith("-v"):
        _names((words[0].part(words[0].text[2:]), *words[1:2]), scope)


def _let(words: tuple[Word, ...], scope: Scope) -> None:
    for word in words:
        scope.doubt(names_set_by(word.text))
    _hidden(words, scope)


def _declare(words: tuple[Word, ...], scope: Scope) -> None:
    """Follow what the reader of words did not: flags that change values, names from elsewhere."""
    _hidden(words, scope)
    for word in words:
        name, equals, value = word.text.partition("=")
        if equals and name.isidentifier():
            scope.set(name, (word.part(value),))


def _unset(words: tuple[Word, ...], scope: Scope) -> None:
    _hidden(words, scope)
    for word in words:
        if word.is_known and word.text.isidentifier():
            scope.set(word.text, None)
        elif word.is_known:
            scope.doubt(names_in(word.text) if "[" in word.text else ())


def _hidden(words: tuple[Word, ...], scope: Scope) -> None:
    """Forget everything if a word that is not known may name any variable."""
    for word in words:
        name = word.text.partition("=")[0]
        if any(reference in name for reference in word.unresolved):
            scope.forget()
            return


def _source(words: tuple[Word, ...], scope: Scope) -> None:
    if not words or not is_harmless_file(words[0].text):
        scope.forget()


def _cd(words: tuple[Word, ...], scope: Scope) -> None:
    if not words or words[-1].text == "-":
        scope.directory = ""
    else:
        path = words[-1].text
        below = scope.directory.rstrip("/")
        is_whole = path.startswith("/") or not scope.directory
        scope.directory = path if is_whole else f"{below}/{path}"


def _popd(_words: tuple[Word, ...], scope: Scope) -> None:
    scope.directory = ""


def _set(words: tuple[Word, ...], scope: Scope) -> None:
    """`set -- a b`, `set a b`; `set -e` leaves the arguments as they are."""
    at = 0
    while at < len(words) and words[at].text[:1] in ("-", "+") and words[at].text != "--":
        at += 2 if words[at].text[-1:] == "o" else 1
    is_marked = at < len(words) and words[at].text == "--"
    values = words[at + 1 :] if is_marked else words[at:]
    if not (is_marked or values):
        return
    for index, word in enumerate(values):
        if word.holds_more:
            scope.doubt_arguments(values[:index])
            return
    scope.arguments = values


def _shift(words: tuple[Word, ...], scope: Scope) -> None:
    text = words[0].text if words else "1"
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
    if number is None or any(word.holds_more for word in scope.arguments[:number]):
        scope.doubt_arguments()
    else:
        scope.arguments = scope.arguments[number:]


_Effect = Callable[[tuple[Word, ...], Scope], None]
_EFFECTS: Mapping[str, _Effect] = {
    "read": _names,
    "mapfile": _names,
    "readarray": _names,
    "getopts": _names,
    "printf": _printf,
    "let": _let,
    **dict.fromkeys(DECLARING, _declare),
    "unset": _unset,
    "source": _source,
    ".": _source,
    "cd": _cd,
    "pushd": _cd,
    "popd": _popd,
    "set": _set,
    "shift": _shift,
}

SILENT = frozenset(_EFFECTS) - {"source", "."}
"""Commands that are of no interest once their effect is known."""
