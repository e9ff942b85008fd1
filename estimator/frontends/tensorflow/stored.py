"""Variables, lists and sums: outputs that are somebody else's buffer, or nobody's yet.

Call -> outputs

Source: tensorflow 2.21 include/tensorflow/core/kernels/training_op_helpers.h
(`PrepareToUpdateVariable`), list_kernels.h;
tensorflow/tensorflow@0c185b921bad0a57801461477dcbc2ba870b6594 tensorflow/core/kernels/
sparse_xent_op.cc. Recalled: resource_variable_ops.cc (`AssignVariableOp`), xent_op.cc.
"""

from __future__ import annotations

from estimator.frontends.tensorflow.buffers import Buffer, TensorList, Value, Variable
from estimator.frontends.tensorflow.call import Call, Engine
from estimator.frontends.tensorflow.graph import TensorType
from estimator.frontends.tensorflow.lists import Lists


def read(engine: Engine, call: Call) -> list[Value]:
    """Return the variable's own buffer."""
    variable = call.inputs[0]
    return [variable.buffer if isinstance(variable, Variable) else engine.new(call, 0)]


def assign(engine: Engine, call: Call) -> list[Value]:
    """Adopt a value nobody else reads; else copy it, in place if the variable is not read."""
    variable, value = call.inputs
    if not isinstance(variable, Variable) or not isinstance(value, Buffer):
        return []
    held = variable.buffer
    if value.refs == 1 and value is not held:
        engine.memory.give(variable, value)
    elif held is None or held.refs > 1 or held.nbytes != value.nbytes:
        engine.memory.give(variable, engine.memory.new(value.nbytes, variable.role))
    return []


def update(engine: Engine, call: Call) -> list[Value]:
    """Change a variable in place, or a copy of it if somebody still reads the old value."""
    variable = call.inputs[0]
    if isinstance(variable, Variable):
        held = variable.buffer
        if held is not None and held.refs > 1:
            engine.memory.give(variable, engine.memory.new(held.nbytes, variable.role))
    return []


def cross_entropy(engine: Engine, call: Call) -> list[Value]:
    """Return the loss, then the gradient, which may lie where the logits were."""
    loss = engine.new(call, 0)
    logits = call.inputs[0]
    if isinstance(logits, Buffer) and logits.refs == 1:
        return [loss, logits]
    return [loss, engine.new(call, 1)]


def added(engine: Engine, call: Call) -> list[Value]:
    """Return a sum, which may lie where any of its inputs did; of lists, item by item."""
    lists = [each for each in call.inputs if isinstance(each, TensorList)]
    if not lists:
        return engine.forward(call, range(len(call.inputs)))
    longest = max(lists, key=lambda each: len(each.items))
    for item in longest.items:
        engine.memory.hold(item)
    return [TensorList(longest.items)]


def zeros(engine: Engine, call: Call) -> list[Value]:
    """Return zeros, which may lie where the input did; of a list, a new tensor an item."""
    first = call.inputs[0]
    if not isinstance(first, TensorList):
        return engine.forward(call, (0,))
    made = TensorList(())
    for item in first.items:
        buffer = None
        if isinstance(item, Buffer):
            buffer = engine.memory.new(item.nbytes, call.role)
            engine.memory.hold(buffer)
        made.items.append(buffer)
    return [made]


def listed(engine: Engine, call: Call) -> list[Value]:
    """Run an operator of lists."""
    outputs = call.node.outputs

    def fresh(kind: TensorType) -> Value:
        return engine.new(call, outputs.index(kind))

    lists = Lists(engine.memory)
    return lists.run(call.node, call.inputs, call.known, call.kinds, fresh, call.role)
