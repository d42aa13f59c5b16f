"""Moved to :mod:`pt_neural.text.tokens`."""

from pt_neural.text.tokens import FIELD_END, TEXT_FIELDS, frame_texts, join_fields

__all__ = ["FIELD_END", "TEXT_FIELDS", "frame_texts", "join_fields"]
