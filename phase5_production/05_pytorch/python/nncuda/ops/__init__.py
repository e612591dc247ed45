"""Fusions: several operations of a network in one kernel."""
from . import fused_ops
