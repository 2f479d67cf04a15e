//! Findings as text, JSON and Markdown.
