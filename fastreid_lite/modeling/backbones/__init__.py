"""Networks from images to maps: ResNet with re-id surgery, OSNet, and every network of timm by name."""
