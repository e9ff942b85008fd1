"""The settings about nodes: where they are read from, and what nobody labels.

    YAML -> NodeSettings (frozen)

A card is written as `--gpu` takes it; what the catalog does not know is an error at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from admission.section import Section
from estimator.catalog import resolve_device
from estimator.device import Device
from estimator.errors import SpecError

MAX_POOLS = 256
MAX_POOL_NODES = 1000
LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
RESOURCE = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""Source: kubernetes v1.36.3 apimachinery `pkg/util/validation/validation.go`."""

Labels = dict[Annotated[str, Field(pattern=LABEL_KEY)], Annotated[str, Field(pattern=LABEL_VALUE)]]


class Taint(Section):
    """A taint of a node, as in its spec."""

    key: str = Field(pattern=LABEL_KEY)
    """Its key: `nvidia.com/gpu`."""

    value: str = Field(default="", pattern=LABEL_VALUE)
    """Its value."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What it does to pods that do not tolerate it."""


class CardSettings(Section):
    """A card: one of the catalog, or one given by its figures."""

    product: str | None = Field(default=None, max_length=100)
    """A name that `vramgate gpus` lists, a product label, or a MIG profile on one."""

    memory: str | None = Field(default=None, max_length=40)
    """The total that nvidia-smi shows, of a card that the catalog lacks: `23028MiB`."""

    compute: str | None = Field(default=None, max_length=10)
    """Its compute capability, beside `memory`: `8.6`."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if (self.product is None) == (self.memory is None):
            raise ValueError("one of product and memory is needed")
        if (self.memory is None) != (self.compute is None):
            raise ValueError("memory and compute belong together")
        if "=" in (self.product or ""):
            raise ValueError("product is the name of a card")
        try:
            self.device()
        except SpecError as error:
            raise ValueError("; ".join(each.message for each in error.problems)) from error
        return self

    def device(self) -> Device:
        """Return the card.

        Raises:
            SpecError: if there is no such card.
        """
        if self.product is not None:
            return resolve_device(self.product)
        return resolve_device(f"memory={self.memory},compute={self.compute}")


class NodePool(CardSettings):
    """Nodes that an autoscaler may add: of a group that is scaled to zero, or not yet grown."""

    name: str = Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
    """What messages call its nodes."""

    count: int = Field(default=1, ge=1, le=MAX_POOL_NODES)
    """How many nodes it can grow to. Those that carry its labels today are counted off."""

    gpus_per_node: int = Field(default=1, ge=1, le=1024)
    """Units of the resource that one node offers."""

    resource: str = Field(default="nvidia.com/gpu", pattern=RESOURCE)
    """What pods ask for: `nvidia.com/mig-1g.10gb`, `nvidia.com/gpu.shared`."""

    sharing: Literal["none", "mig", "time-slicing"] = "none"
    """How a card is divided. Under time-slicing no verdict is better than `tight`."""

    labels: Labels = Field(default_factory=dict, max_length=100)
    """Labels of its nodes, as the autoscaler knows them."""

    taints: tuple[Taint, ...] = Field(default=(), max_length=50)
    """Taints of its nodes."""


class NodeCards(CardSettings):
    """What cards the nodes with certain labels have, whatever else their labels say."""

    selector: Labels = Field(max_length=20)
    """Labels that the nodes have, all of them."""

    @field_validator("selector")
    @classmethod
    def _some(cls, value: Labels) -> Labels:
        if not value:
            raise ValueError("at least one label is needed")
        return value


class NodeSettings(Section):
    """Where the cards of the cluster are read from."""

    file: Path | None = None
    """Node objects (`kubectl get nodes -o json`) read once. Absent: the API server is watched."""

    keep_days: float = Field(default=7.0, ge=0, le=365)
    """How long the cards of a removed node still count, for pools that scale to zero."""

    classes: tuple[NodeCards, ...] = Field(default=(), max_length=MAX_POOLS)
    """Cards of nodes whose labels do not say them: mixed, unified memory. The first counts."""

    pools: tuple[NodePool, ...] = Field(default=(), max_length=MAX_POOLS)
    """Nodes that could still appear. Jobs are judged against them too."""

    @field_validator("pools")
    @classmethod
    def _distinct(cls, value: tuple[NodePool, ...]) -> tuple[NodePool, ...]:
        names = [pool.name for pool in value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two pools are called {twice[0]}")
        return value
