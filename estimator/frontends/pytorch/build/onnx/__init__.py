"""Models that come as the forward graph of an ONNX file: read, simplified, walked with torch."""
