"""What the real library says. Figures are cuDNN 9.26's."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest

from estimator.cudnn import Answer, Card, Direction, Question
from estimator.cudnn.client import Plans
from estimator.cudnn.wire import MAX_BATCH, encode_batch
from estimator.processes.frames import frame
from estimator.workers.cudnn_supervisor import CudnnSupervisor
from tests.estimator.cudnn.cases import A100, H100, RELEASE, T4, V100, convolution

pytestmark = pytest.mark.asyncio(loop_scope="module")

Connect = Callable[[], Plans]
FLOAT = 4
TENSOR_CORE, DOWN_CONVERTS = 0, 1


async def answer_to(plans: Plans, question: Question, card: Card) -> Answer:
    """Return the answer to a question that has one."""
    (answer,) = await asyncio.to_thread(plans.ask, [question], card)
    assert answer is not None, plans.reason
    return answer


async def test_the_library_says_which_it_is(connect: Connect) -> None:
    """The version comes with the greeting."""
    plans = connect()

    assert await asyncio.to_thread(lambda: plans.version) == RELEASE


async def test_winograd_on_a_t4_holds_the_weight_twice(connect: Connect) -> None:
    """512 to 512 channels, 3x3: the weight and its 4x4 transform, 25 MiB."""
    question = convolution(channels=(512, 512), size=7)

    answer = await answer_to(connect(), question, T4)

    assert answer.instant[0].workspace == (3 * 3 + 4 * 4) * 512 * 512 * FLOAT + 2048
    assert TENSOR_CORE not in answer.instant[0].notes


@pytest.mark.parametrize(
    ("card", "channels", "stride", "mebibytes"),
    [(A100, (256, 512), 2, 155.5), (A100, (256, 128), 1, 151.6), (H100, (256, 128), 1, 148.1)],
)
async def test_weight_gradients_of_resnet50_take_the_largest_workspaces(
    connect: Connect, card: Card, channels: tuple[int, int], stride: int, mebibytes: float
) -> None:
    """The 1x1 convolutions at 56 x 56 of a batch of 32 copy what they read, 98 + 49 MiB."""
    question = convolution(Direction.WEIGHT, channels=channels, window=1, stride=stride)

    answer = await answer_to(connect(), question, card)

    first = next(plan for plan in answer.instant if DOWN_CONVERTS not in plan.notes)
    assert round(first.workspace / 2**20, 1) == mebibytes


async def test_a_contiguous_convolution_is_copied_for_tensor_cores(connect: Connect) -> None:
    """A plan with tensor cores copies input, output and weight into channels-last."""
    question = convolution(channels=(256, 128), window=1)
    copies = (32 * 256 * 56 * 56 + 32 * 128 * 56 * 56 + 256 * 128) * FLOAT

    answer = await answer_to(connect(), question, A100)

    sizes = {plan.workspace for plan in answer.instant if TENSOR_CORE in plan.notes}
    assert copies + 16 in sizes


async def test_a_channels_last_convolution_is_not_copied(connect: Connect) -> None:
    """What lies as tensor cores read it needs no copy."""
    question = convolution(channels=(256, 128), window=1, dtype="float16", channels_last=True)

    answer = await answer_to(connect(), question, A100)

    assert answer.instant[0].workspace < 2**20


@pytest.mark.parametrize(
    "question",
    [
        convolution(spatial=3, size=8, batch=2),
        convolution(groups=64, channels_last=True),
        convolution(dtype="float64", batch=2),
        convolution(dtype="bfloat16"),
    ],
    ids=["three-dimensional", "depthwise", "float64", "bfloat16"],
)
async def test_other_convolutions_have_plans_in_all_directions(
    connect: Connect, question: Question
) -> None:
    """Three dimensions, groups and every dtype are asked like any other."""
    plans = connect()
    for direction in Direction:
        turned = replace(question, direction=direction)

        answer = await answer_to(plans, turned, A100)

        assert answer.instant or answer.fallback


async def test_the_same_question_has_the_same_answer(connect: Connect) -> None:
    """Asked again through another connection, the answer is the one that was remembered."""
    question = convolution(batch=7)

    answers = [await answer_to(connect(), question, A100) for _ in range(2)]

    assert answers[0] == answers[1]


async def test_cards_are_told_apart(connect: Connect) -> None:
    """One convolution has other plans on another architecture."""
    question = convolution()
    plans = connect()

    answers = [await answer_to(plans, question, card) for card in (T4, A100, H100)]

    assert len(set(answers)) == 3


async def test_a_card_without_support_has_no_answer(connect: Connect) -> None:
    """The build for CUDA 13 would answer for a V100, and wrongly: it is not asked."""
    plans = connect()

    answers = await asyncio.to_thread(plans.ask, [convolution(), convolution(batch=8)], V100)

    assert answers == [None, None]
    assert plans.reason == "cuDNN 9.26.0 for CUDA 13 has no answers for compute capability 7.0"


async def test_what_is_no_convolution_has_no_answer(connect: Connect) -> None:
    """A question whose shapes do not fit does not reach the library."""
    plans = connect()
    question = replace(convolution(), output=(32, 64, 56, 1))

    assert await asyncio.to_thread(plans.ask, [question, convolution()], A100) != [None, None]
    assert plans.reason == "cuDNN was not asked: the output is not of the size the window gives"


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        frame(b"not JSON"),
        frame(encode_batch(A100, [convolution()] * (MAX_BATCH + 1))),
        frame(encode_batch(A100, [convolution()])) * 2,
    ],
    ids=["too long", "not JSON", "too many", "before the answer"],
)
async def test_who_sends_something_else_is_cut_off(
    supervisor: CudnnSupervisor, connect: Connect, sent: bytes
) -> None:
    """The connection ends, and others are served."""
    stranger = supervisor.connect()
    assert stranger is not None
    with stranger:
        stranger.sendall(sent)
        assert await asyncio.to_thread(_ends, stranger)

    assert await asyncio.to_thread(connect().ask, [convolution()], A100) != [None]


def _ends(connection: socket.socket) -> bool:
    """Read until the other side closes."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


async def test_two_forks_share_the_library(connect: Connect) -> None:
    """Two that ask long lists at the same time get what each would get alone."""
    lists = [[convolution(batch=batch + 100 * fork) for batch in range(1, 40)] for fork in (1, 2)]

    together = await asyncio.gather(
        *(asyncio.to_thread(connect().ask, questions, A100) for questions in lists)
    )

    alone = [await asyncio.to_thread(connect().ask, questions, A100) for questions in lists]
    assert together == alone
    assert all(answer is not None for answers in together for answer in answers)
