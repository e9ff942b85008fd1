"""Keras models, optimizers and losses from a JobSpec, on whichever backend a process has chosen.

    JobSpec -> keras.Model, optimizer, loss, shapes of a batch

The frontends whose jobs are written in Keras share it. Nothing of a configuration is executed.
"""
