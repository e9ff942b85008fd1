"""What a CUDA device does otherwise than the device the trace runs on.

Traits, precision -> dispatcher rules for the time of a trace
"""
