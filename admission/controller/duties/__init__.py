"""What the controller looks after, one file a duty.

Parts -> Duties
"""

from __future__ import annotations

from admission.controller.duties.calibration import Calibration
from admission.controller.duties.deaths import Deaths
from admission.controller.duties.estimating import Estimating
from admission.controller.duties.late import Late
from admission.controller.duties.moves import Moves
from admission.controller.duties.queue import Queue
from admission.controller.duties.stuck import Stuck
from admission.controller.duties.suspended import Suspended
from admission.controller.duties.wrong_card import WrongCard
from admission.controller.duty import Duty
from admission.controller.parts import Parts

NAMES: tuple[str, ...] = (
    "estimating",
    "late",
    "suspended",
    "stuck",
    "queue",
    "deaths",
    "moves",
    "wrong-card",
    "calibration",
)
"""The names of all duties: a label of metrics."""


def duties_of(parts: Parts) -> tuple[Duty, ...]:
    """Return the duties that the settings want."""
    queue = (Queue(parts),) if parts.settings.kueue else ()
    calibration = (Calibration(parts),) if parts.settings.calibrate else ()
    return (
        Estimating(parts),
        Late(parts),
        Suspended(parts),
        Stuck(parts),
        *queue,
        Deaths(parts),
        Moves(parts),
        WrongCard(parts),
        *calibration,
    )
