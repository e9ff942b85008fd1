"""Keywords, assignments and blocks of a shell script.

words -> statements, each with what is assigned before it
"""

from __future__ import annotations

from abc import abstractmethod

from admission.detect import builtins
from admission.detect.conditions import outcome_of
from admission.detect.flow import LOOPS
from admission.detect.levels import Block, Chance, Phase
from admission.detect.run import Redirection, Run, Statement
from admission.detect.syntax import Syntax
from admission.detect.words import Variables, Word

_OPENING = frozenset({"if", "while", "until", "for", "select", "case", "{"})
_CLOSING = {"fi": ("if",), "done": tuple(LOOPS), "esac": ("case",), "}": ("{",)}
_BRANCHING = frozenset({"then", "elif", "else", "do"})
_JOINING = ("&&", "||", "|")
_NOTHING = frozenset({"time", "coproc", "function"})
_KEYWORDS = _OPENING | _CLOSING.keys() | _BRANCHING | _NOTHING | {"!"}


class Blocks(Syntax):
    """Follows the blocks of one text."""

    def __init__(self, script: Word, run: Run, *, is_sure: bool) -> None:
        super().__init__(script, run, is_sure=is_sure)
        self.last = ""
        """The name of the last command; `!` if it was negated."""
        self.is_negated = False
        self.outcome: bool | None = None
        """Whether the last command succeeds, if it stands alone and that is known."""
        self.is_joined = False
        """The next command follows `&&`, `||` or `|`."""
        self.awaits_name = False
        """After `function`."""
        self.num_dry = 0
        """How many bodies of functions are being read that nobody has called."""

    @abstractmethod
    def take_statement(self, statement: Statement) -> None:
        """Take in one simple command."""

    @abstractmethod
    def redirect_block(
        self, block: Block, redirections: tuple[Redirection, ...], *, writes_pipe: bool
    ) -> None:
        """Take in the redirections after a block, and what it printed."""

    def end_word(self) -> None:
        """Take in the word that was read, if one was started."""
        if self.word.is_started:
            name, is_plain = self.word.name, self.word.is_plain
            self.take_word(self.finish_word(), name=name, is_plain=is_plain)

    def take_word(self, word: Word, *, name: str | None, is_plain: bool) -> None:
        """Add a word: a keyword, an assignment, a target, or of the command."""
        top = self.flow.blocks[-1] if self.flow.blocks else None
        is_first = self.name is None and not self.assigned
        if self.awaited is not None:
            (operator, stream), self.awaited = self.awaited, None
            found = Redirection(operator=operator, stream=stream, target=word)
            self.redirections.append(found)
        elif top is not None and top.phase is Phase.CLAUSE:
            self._clause_word(top, word)
        elif is_first and self.awaits_name:
            self.awaits_name, self.defined = False, (word.text, self.at)
        elif is_first and is_plain and word.text in _KEYWORDS:
            self._keyword(word.text)
        elif name is not None and (self.name is None or self.name in builtins.DECLARING):
            self.assigned[name] = (self._added(name, word),)
        else:
            self.name = word.text if self.name is None or word.text == "]]" else self.name
            self.add_word(word)

    def _added(self, name: str, word: Word) -> Word:
        """Return the value of `NAME=value` or `NAME+=value`."""
        head, _, value = word.text.partition("=")
        old = (self.scope.get(name) or ()) if head.endswith("+") else ()
        kept = tuple(item for part in old for item in part.unresolved)
        joined = "".join(part.text for part in old) + value
        self.budget.expand(len(joined))
        return Word(
            text=joined,
            origin=word.origin,
            unresolved=(*kept, *word.unresolved),
            is_template=word.is_template,
            assumed=(*(item for part in old for item in part.assumed), *word.assumed),
        )

    def _clause_word(self, block: Block, word: Word) -> None:
        """Take a word between `for` or `case` and what ends its clause."""
        if block.kind == "case" and word.text == "in" and self.words:
            self.words = []
            self.flow.next_condition(block, Phase.PATTERN)
        elif block.kind != "case" and word.text == "do" and len(self.words) == 1:
            self._end_clause(block)
            self.flow.begin(block)
        else:
            self.add_word(word)

    def _end_clause(self, block: Block) -> None:
        """Take in `for NAME in WORDS`: the loop runs for certain over one known word."""
        names, values = self.words[:1], self.words[2:]
        self.words = []
        self.scope.doubt(name.text for name in names if name.text.isidentifier())
        self.apply_effects()
        block.phase = Phase.CONDITION
        block.is_decided = block.kind == "for" and any(w.is_known and w.text for w in values)

    def _keyword(self, word: str) -> None:
        if self.closed is not None:
            self.end_command(";")
        block = self.flow.top
        if word == "!":
            self.is_negated = not self.is_negated
        elif word == "function":
            self.awaits_name = True
        elif word in _OPENING:
            self.open_block(word)
        elif block is None or word in _NOTHING:
            return
        elif word in _CLOSING:
            if block.kind in _CLOSING[word]:
                self.close_block()
        elif word == "elif":
            if block.kind == "if":
                self.flow.next_condition(block, Phase.CONDITION)
        elif block.kind == "if" or (word == "do" and block.kind in LOOPS):
            self.flow.begin(block, self._chance(block, word))

    def _chance(self, block: Block, word: str) -> Chance:
        """Return whether what follows `then`, `else` or `do` runs."""
        if block.kind in ("for", "select"):
            return Chance.SURE if block.is_decided else Chance.OPEN
        if word == "else":
            return block.chance_of_rest
        wanted = block.kind != "until"
        if self.outcome is None:
            found = Chance.OPEN
        else:
            found = Chance.SURE if self.outcome is wanted else Chance.NEVER
        return block.take(found) if block.kind == "if" else found

    def open_block(self, kind: str) -> None:
        name, start = self.defined or (None, self.at)
        self.defined = None
        self.flow.open(
            kind,
            start=start,
            num_commands=len(self.run.commands),
            num_printed=len(self.run.printed),
            function=name,
        )
        self.num_dry += name is not None

    def close_block(self) -> None:
        """Leave a block, or read a loop again that changes what it reads."""
        block = self.flow.blocks[-1]
        if block.kind in LOOPS and block.function is None and self.flow.reread(block):
            self.budget.read_again(self.at - block.start)
            del self.run.commands[block.num_commands :]
            del self.run.printed[block.num_printed :]
            self.at = block.start
            self.after_heredocs = 0
            return
        self.flow.close()
        if block.kind not in ("{", "("):
            self.last = block.kind
        if block.function is None:
            self.closed = block
            return
        self.num_dry -= 1
        del self.run.commands[block.num_commands :]
        if not self.num_dry:
            self.run.functions[block.function] = self.text[block.start : self.at]

    def end_command(self, operator: str) -> None:
        self.end_word()
        self.awaited = None
        top = self.flow.top
        if top is not None and top.phase is Phase.CLAUSE:
            if top.kind != "case" and self.words:
                self._end_clause(top)
            return
        words, assigned, closed = tuple(self.words), self.assigned, self.closed
        is_empty = not (words or assigned or closed or self.redirections)
        if is_empty and operator == "\n" and self.flow.list.is_awaited:
            return
        redirections, self.redirections = tuple(self.redirections), []
        self.words, self.assigned, self.closed, self.name = [], {}, None, None
        if closed is not None:
            self.outcome = None
            if not self.flow.is_dead and not self.num_dry:
                self.redirect_block(closed, redirections, writes_pipe=operator == "|")
            self.flow.after(closed, operator)
        elif not is_empty:
            self.budget.add_command()
            self.last = _name_of(words, assigned)
            self._note_outcome(words, is_joined=self.is_joined or operator in _JOINING)
            if not self.flow.is_dead:
                self._take(words, assigned, redirections, operator)
        self.last = "!" if self.is_negated and not is_empty else self.last
        self.is_negated = self.is_negated and is_empty
        self.is_joined = operator in _JOINING
        self.effects = {}
        self.flow.operate(operator, last=self.last)

    def _note_outcome(self, words: tuple[Word, ...], *, is_joined: bool) -> None:
        found = outcome_of(words) if words and not is_joined else None
        self.outcome = found if found is None or not self.is_negated else not found

    def _take(
        self,
        words: tuple[Word, ...],
        assigned: Variables,
        redirections: tuple[Redirection, ...],
        operator: str,
    ) -> None:
        is_piped = self.flow.list.is_piped
        self.take_statement(
            Statement(
                words=words,
                assigned=assigned,
                redirections=redirections,
                is_alone=operator in ("|", "&") or is_piped,
                reads_pipe=is_piped,
                writes_pipe=operator == "|",
                is_repeated=any(block.kind in LOOPS for block in self.flow.blocks),
            )
        )

    def apply_effects(self) -> None:
        """Set what the expansions of the command set."""
        for name, value in self.effects.items():
            self.scope.set(name, value)
        self.effects = {}


def _name_of(words: tuple[Word, ...], assigned: Variables) -> str:
    """Return what decides about `&&` after a command: its name; empty for plain assignments."""
    if words:
        return words[0].text
    is_known = all(word.is_known for value in assigned.values() for word in value)
    return "" if is_known else "$"
