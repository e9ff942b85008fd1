"""How large a vocabulary is, where a tokenizer is named by its model on the Hub.

flag with a Hub id, multiple -> model.config.vocab_size in the draft

A model's embedding is at least as large as its tokenizer's vocabulary: an upper bound, so the value
comes with a doubt.
"""

from __future__ import annotations

from admission.detect.draft import Draft
from admission.detect.flags import Flag
from admission.detect.hub import stored_model
from admission.detect.names import hub_id
from admission.detect.scripts.family import Call
from estimator.catalog import known_model

_PATH = "model.config.vocab_size"


def put_hub_vocabulary(call: Call, draft: Draft, flag: Flag | None, *, multiple: int) -> bool:
    """Set the vocabulary of the Hub model in *flag*, rounded up to *multiple*; False if unknown.

    A model that the catalog lacks is asked for.
    """
    word = flag.value if flag is not None else None
    name = hub_id(word.text) if word is not None and word.is_known else None
    if flag is None or name is None:
        return False
    known = known_model(name)
    config = (
        known.config if known is not None else stored_model(name, None, call.files.lookup).config
    )
    size = config.get("vocab_size")
    if not isinstance(size, int) or size < 1:
        return False
    draft.put(_PATH, -(-size // multiple) * multiple, flag.source)
    draft.doubt(
        f"{flag.field}: the vocabulary is taken from the model {name:.100}; its tokenizer may have "
        "fewer entries",
        _PATH,
    )
    return True
