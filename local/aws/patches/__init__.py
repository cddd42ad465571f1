"""Changes to moto and the SDK that make tests and the local stack faster."""
