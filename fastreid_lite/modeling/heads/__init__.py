"""From a map to the feature of an image, and to class scores in training."""
