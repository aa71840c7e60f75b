"""Layers that several parts share: pooling, norms, classifiers, blocks put into networks."""
