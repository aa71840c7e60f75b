"""Ground floor: processes, seeds, logging, registries. Knows nothing of the rest of the package."""
