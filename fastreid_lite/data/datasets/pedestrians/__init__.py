"""Rendered pedestrians: who they are, what they wear, the cameras that see them. Needs numpy and Pillow alone."""
