"""What an xTimer client sends."""
