"""Parts of detectors whose sizes depend on values, at the most their configuration allows.

    (nothing) -> torchvision and transformers with lists as long as they may become

Each replacement follows the function it stands for, operator by operator, and takes counts from the
configuration instead of from values. Source: torchvision 0.29.2 `models/detection` and
`ops/poolers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torchvision.models.detection import _utils as detection_utils
from torchvision.models.detection import roi_heads, rpn, transform
from torchvision.ops import boxes as box_ops
from torchvision.ops import poolers, roi_align

from estimator.frontends.pytorch.patches import replaced

NMS_BLOCK = 64
"""Boxes a word of the mask has bits for: `threadsPerBlock` of `ops/cuda/nms_kernel.cu`."""
NMS_AT_ONCE = 25_000
"""Boxes up to which all classes are suppressed in one call (`batched_nms`, on CUDA)."""


def _nms(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Return positions of all boxes: none overlaps another.

    Source: `nms_kernel` of torchvision `csrc/ops/cuda/nms_kernel.cu`.
    """
    del iou_threshold
    count = boxes.shape[0]
    order = scores.sort(0, descending=True)[1]
    ordered = boxes.index_select(0, order)
    mask = torch.empty(count * -(-count // NMS_BLOCK), dtype=torch.int64, device=boxes.device)
    keep = torch.zeros(count, dtype=torch.bool, device=boxes.device)
    del ordered, mask, keep
    return order.index_select(0, order)


def _batched_nms(
    boxes: torch.Tensor, scores: torch.Tensor, idxs: torch.Tensor, iou_threshold: float
) -> torch.Tensor:
    if boxes.shape[0] <= NMS_AT_ONCE:
        offsets = idxs.to(boxes) * (boxes.max() + 1)
        return _nms(boxes + offsets[:, None], scores, iou_threshold)
    # Class by class, and no class has many of them: the suppression's own mask is small.
    return scores.sort(0, descending=True)[1]


def _low_quality(
    _: Any, matches: torch.Tensor, all_matches: torch.Tensor, quality: torch.Tensor
) -> None:
    """Match one more prediction an object (`Matcher.set_low_quality_matches_`)."""
    highest, _positions = quality.max(dim=1)
    equal = quality == highest[:, None]
    update = equal.new_empty(quality.shape[0], dtype=torch.int64)
    matches[update] = all_matches[update]


def _subsample(self: Any, labels: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return as many samples an image as the heads train on (`RoIHeads.subsample`)."""
    sampler = self.fg_bg_sampler
    return [
        label.new_empty(min(sampler.batch_size_per_image, label.numel()), dtype=torch.int64)
        for label in labels
    ]


def _select(self: Any, proposals: Any, targets: Any) -> Any:
    """Return the samples, with the share of objects among them that the sampler allows.

    The labels are real, so that what picks the objects among them finds as many as there may be.
    """
    selected = _SELECT(self, proposals, targets)
    chosen, matched, labels, regression = selected
    made = []
    for label in labels:
        objects = int(
            self.fg_bg_sampler.batch_size_per_image * self.fg_bg_sampler.positive_fraction
        )
        values = [1] * min(objects, label.numel()) + [0] * max(0, label.numel() - objects)
        made.append(torch.tensor(values, dtype=torch.int64))
    return chosen, matched, made, regression


_SELECT = roi_heads.RoIHeads.select_training_samples


def _proposal_loss(
    self: Any,
    objectness: torch.Tensor,
    pred_bbox_deltas: torch.Tensor,
    labels: list[torch.Tensor],
    regression_targets: list[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the losses over a full sample (`RegionProposalNetwork.compute_loss`)."""
    sampler = self.fg_bg_sampler
    positive, negative = sampler(labels)
    del positive, negative
    images = len(labels)
    objects = int(sampler.batch_size_per_image * sampler.positive_fraction) * images
    whole = sampler.batch_size_per_image * images
    positions = objectness.new_empty(objects, dtype=torch.int64)
    others = objectness.new_empty(whole - objects, dtype=torch.int64)
    sampled = torch.cat([positions, others], dim=0)
    objectness = objectness.flatten()
    joined, targets = torch.cat(labels, dim=0), torch.cat(regression_targets, dim=0)
    box_loss = (
        functional.smooth_l1_loss(
            pred_bbox_deltas[positions], targets[positions], beta=1 / 9, reduction="sum"
        )
        / sampled.numel()
    )
    own_loss = functional.binary_cross_entropy_with_logits(objectness[sampled], joined[sampled])
    return own_loss, box_loss


def _roi_align(
    x_filtered: list[torch.Tensor],
    boxes: list[torch.Tensor],
    output_size: Any,
    sampling_ratio: int,
    scales: Any,
    mapper: Any,
) -> torch.Tensor:
    """Return the pooled regions, spread evenly over the levels (`_multiscale_roi_align`)."""
    rois = poolers._convert_to_roi_format(boxes)
    first = x_filtered[0]
    if len(x_filtered) == 1:
        pooled: torch.Tensor = roi_align(
            first, rois, output_size, spatial_scale=scales[0], sampling_ratio=sampling_ratio
        )
        return pooled
    mapper(boxes)
    count, levels = len(rois), len(x_filtered)
    result = torch.zeros(
        (count, first.shape[1], *output_size), dtype=first.dtype, device=first.device
    )
    for level, (feature, scale) in enumerate(zip(x_filtered, scales, strict=True)):
        share = count * (level + 1) // levels - count * level // levels
        index = torch.empty(share, dtype=torch.int64, device=rois.device)
        part = roi_align(
            feature, rois[index], output_size, spatial_scale=scale, sampling_ratio=sampling_ratio
        )
        result[index] = part.to(result.dtype)
    return result


@contextmanager
def detection_at_capacity() -> Iterator[None]:
    """Let torchvision's detectors propose, match and keep as many boxes as they may."""
    with replaced(
        (box_ops, "batched_nms", _batched_nms),
        (box_ops, "nms", _nms),
        (detection_utils.Matcher, "set_low_quality_matches_", _low_quality),
        (roi_heads.RoIHeads, "subsample", _subsample),
        (roi_heads.RoIHeads, "select_training_samples", _select),
        (rpn.RegionProposalNetwork, "compute_loss", _proposal_loss),
        (poolers, "_multiscale_roi_align", _roi_align),
        (transform.GeneralizedRCNNTransform, "torch_choice", lambda _, sizes: max(sizes)),
    ):
        yield
