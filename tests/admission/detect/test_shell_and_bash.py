"""Random scripts mean to the reader what they mean to bash."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from admission.detect.budget import budget_for
from admission.detect.files import Files
from admission.detect.shell import read_script
from admission.detect.words import Word

BASH = shutil.which("bash")
NUM_SCRIPTS = 40
ARGUMENTS = ("one", "t w o")
VARIABLES = {"E": "env", "S": "x y", "N": "3", "Z": ""}
PROBE = 'a() { printf "%s\\0" "$#" "$@" >&9; }\n'
"""Makes `a` write down what it is called with."""


class Scripts:
    """Writes random scripts out of what published manifests are made of."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def script(self) -> str:
        """Return a script of a few statements that shows its variables and files in the end."""
        lines = [self.statement(2) for _ in range(self.random.randint(2, 7))]
        return "\n".join([*lines, 'a "$A" "$B" $E ${N:-7} "$@"', ""])

    def statement(self, depth: int) -> str:
        """Return one statement; with *depth*, it may be a block."""
        kinds = [self.probe, self.assignment, self.write, self.heredoc, self.positional]
        blocks = [self.branch, self.group, self.function, self.list, self.piped]
        return self.random.choice(kinds + (blocks * 2 if depth else []))(depth)

    def word(self) -> str:
        """Return a word with quotes or expansions."""
        name = self.random.choice("ABESNZ")
        return self.random.choice(
            [
                "plain",
                "'$E q'",
                f"${name}",
                f'"${name}"',
                f'"<${{{name}}}>"',
                f'"${{{name}:-d}}"',
                f"${{{name}-d}}",
                f'"${{{name}:+p}}"',
                "\\$E",
                "x\\ y",
                '"\\"q\\" \\$E"',
                "$'t\\tn'",
                '"$1"',
                '"${2:-none}"',
                "$9",
                "$#",
                "$((N * 2 + 1))",
                "$(((N - 7) / 2 % 5))",
                '"$(echo "s $E")"',
                "$(echo -n $S)",
                "$(printf '%s-%s\\n' $S)",
                '"$(cat f1)"',
                '"$(< f2)"',
                "`echo $E`",
                '"$(cat <<EOF\nin $E \\$E (\nEOF\n)"',
            ]
        )

    def words(self, least: int = 0) -> str:
        """Return some words."""
        return " ".join(self.word() for _ in range(self.random.randint(least, 3)))

    def probe(self, _depth: int) -> str:
        """Return a command that is written down."""
        prefix = self.random.choice(["", "", "E=other ", "A=1 B=$A "])
        return f"{prefix}a {self.words()}"

    def assignment(self, _depth: int) -> str:
        """Return an assignment."""
        name = self.random.choice("AB")
        return self.random.choice(
            [
                f"{name}={self.word()}",
                f"export {name}={self.word()}",
                f"{name}+={self.word()}",
                f"unset {name}",
                f": ${{{name}:=dflt}}",
                f'L=({self.words(1)}); {name}=${{L[0]}}; a "${{L[@]}}"',
            ]
        )

    def target(self) -> str:
        """Return a redirection of the output to a file."""
        operator = self.random.choice([">", ">", ">>", ">|", "1>", "2>/dev/null >"])
        return f"{operator} {self.random.choice(['f1', 'f2', 'd/f3', '$E.f'])}"

    def write(self, _depth: int) -> str:
        """Return a command that writes a file."""
        text = self.random.choice(
            [
                f"echo {self.words()}",
                f"echo -e 'n\\n' {self.word()}",
                f"echo -n {self.words()}",
                f"printf '%s\\n' {self.words(1)}",
                f"printf 'k: %s # %%\\n' {self.word()}",
                "cat f1",
                f"cat <<< {self.word()}",
                "cat f1 - <<< tail",
            ]
        )
        return f"{text} {self.target()}"

    def heredoc(self, _depth: int) -> str:
        """Return a here-document, to a file or another command."""
        tag, quoted = self.random.choice(
            [("EOF", "EOF"), ("EOF", "'EOF'"), ("END", '"END"'), ("E_F", "\\E_F")]
        )
        operator = self.random.choice(["<<", "<<-", "<< "])
        lines = self.random.choices(
            [
                "plain it's",
                "\t$E tab",
                '"${N}" \\$E',
                "`echo $S` \\\\ \\x",
                "$((N+1))",
                "",
                "# c",
                "\\",
            ],
            k=self.random.randint(0, 4),
        )
        use = self.random.choice(
            [
                "cat {h} > f1",
                "cat > f2 {h}",
                "cat {h} | tee f1 > f2",
                "tee d/f3 {h} > /dev/null",
                "cat > f1 {h} && a after",
                "a {h} x > f2",
                "cat {h} > f1; a 'same line' # it's",
            ]
        )
        body = "".join(f"{line}\n" for line in lines)
        return f"{use.format(h=operator + quoted)}\n{body}{tag}"

    def positional(self, _depth: int) -> str:
        """Return a change of the arguments."""
        return self.random.choice(["shift", f"set -- {self.words()}", 'a "$@"', 'a "x$*"'])

    def branch(self, depth: int) -> str:
        """Return an `if`, or a loop that never runs."""
        test = self.random.choice(
            [
                '[ "$A" = "" ]',
                '[ -n "$E" ]',
                '[[ -z "$B" ]]',
                '[ "$N" -gt 2 ]',
                '! [ "$Z" == "$A" ]',
                "test $# -lt 2",
                "true",
                "false",
                "grep -q q f1",
                '[ -f f2 ] && [ "$N" = 3 ]',
            ]
        )
        inner, other = self.statement(depth - 1), self.statement(depth - 1)
        return self.random.choice(
            [
                f"if {test}; then\n{inner}\nfi",
                f"if {test}; then\n{inner}\nelse\n{other}\nfi",
                f"if false; then\na no\nelif {test}; then\n{inner}\nelse\n{other}\nfi",
                f'while [ "$1" = never ]; do\n{inner}\ndone',
                f"case $E in env) a yes;; *)\n{inner}\n;; esac",
            ]
        )

    def group(self, depth: int) -> str:
        """Return a group, a subshell or a sourced file."""
        inner = self.statement(depth - 1)
        return self.random.choice(
            [
                f"{{\n{inner}\n}}",
                f"(\n{inner}\n)",
                f"{{\n{inner}\n}} > blk",
                f"{{\necho one\n{self.simple()}\necho $E\n}} > blk",
                f"(\necho one\n{inner}\n) | cat > blk",
                f'A="$(echo one; {{ echo two; }} > blk; {self.simple()}; echo three)"',
                f"cat > src.sh <<'XX'\n{inner}\nXX\n. ./src.sh",
            ]
        )

    def function(self, depth: int) -> str:
        """Return a function and a call of it."""
        return f"f() {{\n{self.statement(depth - 1)}\n}}\nf {self.words()}"

    def list(self, _depth: int) -> str:
        """Return commands joined by `&&` or `||`."""
        first = self.random.choice(["true", "false", "cd .", '[ -n "$A" ]', "a l"])
        operator = self.random.choice(["&&", "||"])
        return f"{first} {operator} {self.simple()}; a after"

    def simple(self) -> str:
        """Return a statement of one line."""
        return self.random.choice(["A=list", "a it", "echo list > f1", "export B=list"])

    def piped(self, _depth: int) -> str:
        """Return a pipeline that ends in a file."""
        return f"echo {self.words()} | {self.random.choice(['cat', 'tee p2', 'tee -a p1'])} > d/f4"


def _of_bash(script: str, folder: Path) -> list[list[str]]:
    """Return what bash calls `a` with."""
    (folder / "d").mkdir(parents=True)
    out = folder / "calls"
    subprocess.run(
        [str(BASH), "-c", f"exec 9> {out}\ncd {folder}/d/..\n{PROBE}{script}", "bash", *ARGUMENTS],
        env={"PATH": "/usr/bin:/bin", **VARIABLES},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )
    items = out.read_bytes().decode().split("\0")[:-1]
    calls = []
    while items:
        number = int(items.pop(0))
        calls.append(items[:number])
        del items[:number]
    out.unlink()
    return calls


def _is_within(some: Sequence[list[str]], every: Sequence[list[str]]) -> bool:
    """Return whether *some* stand in *every*, in order."""
    rest = iter(every)
    return all(any(item == other for other in rest) for item in some)


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize("seed", range(10))
def test_what_is_read_for_certain_is_what_bash_does(seed: int, tmp_path: Path) -> None:
    """Each call that is sure and known is made so, and each file that is known holds that text."""
    scripts = Scripts(seed)
    num_known = 0
    for number in range(NUM_SCRIPTS):
        script, folder = scripts.script(), tmp_path / str(number)
        files = Files()
        calls = _of_bash(script, folder)

        result = read_script(
            Word(text=script, origin="args"),
            variables={name: (Word(text=value),) for name, value in VARIABLES.items()},
            budget=budget_for(1),
            arguments=tuple(Word(text=text) for text in ARGUMENTS),
            files=files,
        )

        assert result.problem is None
        sure = [
            [word.text for word in command.words[1:]]
            for command in result.commands
            if command.words[0].text == "a"
            and command.is_sure
            and all(word.is_known for word in command.words)
        ]
        assert _is_within(sure, calls), script
        num_known += len(sure)
        if any(command.words[0].text == "." for command in result.commands):
            continue  # a file that is not seen may write others
        for path in ("f1", "f2", "p1", "p2", "blk", "d/f3", "d/f4", "env.f"):
            file = files.read(path, directory="")
            if file.text is not None and file.is_sure and not file.unresolved:
                assert file.text == (folder / path).read_text(), script
                num_known += 1
    assert num_known > NUM_SCRIPTS
