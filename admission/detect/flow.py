"""Which commands of a script run for certain, and which assignments outlive their block.

    opened, branched and closed blocks, operators, exits -> is_sure, is_dead, the scope

Knows nothing of text: the reader of statements tells it what it meets.
"""

from __future__ import annotations

from admission.detect.budget import LimitError
from admission.detect.levels import Block, Chance, List, Phase
from admission.detect.scope import Scope, State
from admission.detect.words import words

MAX_BLOCKS = 200
LOOPS = frozenset({"while", "until", "for", "select"})
TESTS = frozenset(
    words(
        "! [ [[ test (( let false grep egrep fgrep cmp diff command which type pgrep mountpoint "
        "getopts read if while until for select case"
    )
)
"""Commands that are there to be true or false: what depends on them may not run."""
_SUCCEEDS = frozenset({"", "true", ":", "cd", "export", "echo", "printf", "set", "declare"})
"""After these `&&` goes on; the empty one is an assignment."""


_PHASES = {"{": Phase.BODY, "(": Phase.BODY}
_PHASES |= dict.fromkeys(("for", "select", "case"), Phase.CLAUSE)


class Flow:
    """Follows one script. Used once."""

    def __init__(self, scope: Scope, *, is_level_sure: bool) -> None:
        self.scope = scope
        self.blocks: list[Block] = []
        self.list = List()
        self.is_dead = False
        """Nothing runs any more, up to the end of the block."""
        self.may_end = False
        """The script may have ended before this."""
        self._is_sure = True
        self._is_level_sure = is_level_sure
        """The subshell itself runs for certain."""

    @property
    def top(self) -> Block | None:
        """Return the innermost block."""
        return self.blocks[-1] if self.blocks else None

    @property
    def is_sure(self) -> bool:
        """Return whether the next command runs for certain, if those before it succeed."""
        return self._is_level_sure and self._is_sure and self.list.is_sure

    @property
    def is_conditional(self) -> bool:
        """Return whether the next command depends on the one before it in its list."""
        return not self.list.is_sure or self.list.before is not None or self.list.is_piped

    def open(
        self, kind: str, *, start: int, num_commands: int, num_printed: int, function: str | None
    ) -> None:
        """Enter a block."""
        if len(self.blocks) >= MAX_BLOCKS:
            raise LimitError(f"the script nests deeper than {MAX_BLOCKS}")
        block = Block(
            kind=kind,
            phase=_PHASES.get(kind, Phase.CONDITION),
            start=start,
            num_commands=num_commands,
            num_printed=num_printed,
            before=self.scope.state(),
            outer=self.list,
            is_sure=self._is_sure,
            is_level_sure=self._is_level_sure,
            is_dead=self.is_dead,
            function=function,
            is_decided=kind == "{",
        )
        if kind == "(":
            self._is_level_sure, self._is_sure = self.is_sure, True
        else:
            self._is_sure = self._is_sure and self.list.is_sure
        self.blocks.append(block)
        self.list = List()

    def begin(self, block: Block, chance: Chance = Chance.OPEN) -> None:
        """Enter the body or the next branch of *block*, which runs with this *chance*."""
        is_decided = chance is Chance.SURE
        if block.branch is not None and block.kind not in LOOPS:
            self._leave_branch(block)
        block.branch = self.scope.state()
        block.phase = Phase.BODY
        block.is_decided = is_decided
        self._is_sure = block.is_sure and block.outer.is_sure and is_decided
        self.is_dead = block.is_dead or chance is Chance.NEVER

    def next_condition(self, block: Block, phase: Phase) -> None:
        """Leave a branch for the condition or pattern of the next one."""
        if block.branch is not None:
            self._leave_branch(block)
            block.branch = self.scope.state()
        block.phase, block.is_decided = phase, False
        self._is_sure = False
        self.is_dead = block.is_dead

    def _leave_branch(self, block: Block) -> None:
        if block.branch is None:
            return
        if block.is_decided:
            block.result = (self.scope.state(), self.is_dead)
        if not self.is_dead:
            block.changed |= self.scope.changed_since(block.branch)
            self._keep_rest(block.branch)
        else:
            self.scope.restore(block.branch)

    def _keep_rest(self, branch: State) -> None:
        """Go back to *branch*, but for what no list of names can tell."""
        forgotten, arguments = self.scope.is_forgotten, self.scope.arguments
        directory = self.scope.directory
        self.scope.restore(branch)
        self.scope.is_forgotten = forgotten or branch.is_forgotten
        if arguments != branch.arguments:
            self.scope.doubt_arguments()
        if directory != branch.directory:
            self.scope.directory = ""

    def reread(self, block: Block) -> bool:
        """Prepare to read a loop again if what it sets may be seen by its next round."""
        changed = self.scope.changed_since(block.before)
        if block.was_read or not (changed or self.scope.arguments != block.before.arguments):
            return False
        arguments = self.scope.arguments
        self.scope.restore(block.before)
        self.scope.doubt(changed)
        if arguments != block.before.arguments:
            self.scope.doubt_arguments()
        block.was_read = True
        block.phase = Phase.CLAUSE if block.kind in ("for", "select") else Phase.CONDITION
        self._is_sure = block.is_sure and block.outer.is_sure
        self.is_dead, self.list = block.is_dead, List()
        return True

    def close(self) -> Block:
        """Leave the innermost block."""
        block = self.blocks.pop()
        if block.kind in ("if", "case"):
            self._leave_branch(block)
        is_conditional = (
            not (block.is_decided or block.result)
            or not block.outer.is_sure
            or block.outer.before is not None
            or block.outer.is_piped
        )
        if block.kind == "(" or block.function is not None:
            self.scope.restore(block.before)
        elif block.kind in LOOPS:
            self.scope.blend(block.before)
        elif block.result is not None:
            state, self.is_dead = block.result
            self.scope.restore(state)
        elif block.kind in ("if", "case"):
            self.scope.doubt(block.changed)
        ends_outside = block.kind not in LOOPS and block.kind != "(" and block.function is None
        self.is_dead = block.is_dead or (self.is_dead and ends_outside and not is_conditional)
        self._is_sure, self._is_level_sure = block.is_sure, block.is_level_sure
        self.list = block.outer
        return block

    def after(self, block: Block, operator: str) -> None:
        """Undo what *block* has set if it ran in a shell of its own."""
        if operator in ("|", "&") or self.list.is_piped:
            self.scope.restore(block.before)
            self.is_dead = block.is_dead

    def operate(self, operator: str, *, last: str) -> None:
        """Take the *operator* after the command *last*."""
        before, self.list.is_awaited = self.list.before, operator in ("&&", "||", "|")
        self.list.is_piped = operator == "|"
        if operator == "&&":
            if last in TESTS:
                self.list.is_sure = False
            if self.list.is_alternative and before is not None:
                self.scope.blend(before)
                self.list.is_alternative = False
            if before is None and last not in _SUCCEEDS:
                self.list.before = self.scope.state()
        elif operator == "||":
            if before is not None:
                self.scope.blend(before)
            self.list.before = self.scope.state()
            self.list.is_alternative, self.list.is_sure = True, False
        elif operator != "|":
            if before is not None and not self.is_dead:
                directory = self.scope.directory
                self.scope.blend(before)
                if self.list.is_sure and not self.list.is_alternative:
                    # Where `git clone … && cd …` fails, what is run from there is not there either.
                    self.scope.directory = directory
            if not self.list.is_new:
                self.list = List()

    def end(self, *, is_failure: bool = False) -> None:
        """Note an `exit` or what is like it. With *is_failure* the job fails if it runs."""
        if self.list.is_piped:
            return
        is_conditional = self.is_conditional
        if not is_failure:
            self.doubt_rest(is_now=is_conditional)
        if not is_conditional:
            self.is_dead = True

    def leave_loop(self) -> None:
        """Note a `break` or `continue`: the rest of the loop's body may not run."""
        is_inside = False
        for block in reversed(self.blocks):
            is_inside = block.kind in LOOPS
            block.is_sure = block.is_sure and is_inside
            if is_inside or block.kind == "(":
                break
        if self.is_conditional or not is_inside:
            self._is_sure = False
        else:
            self.is_dead = True

    def doubt_rest(self, *, is_now: bool = True) -> None:
        """Note that nothing after this is certain to run, up to the end of the shell."""
        for block in reversed(self.blocks):
            if block.kind == "(" or block.function is not None:
                break
            block.is_sure = False
        else:
            self.may_end = True
        if is_now:
            self._is_sure = False
