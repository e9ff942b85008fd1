"""Hundreds of thousands of reviews at a real `vramgate serve` while things break around it."""
