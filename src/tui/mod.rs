//! The cockpit: state, messages, update, keymap, one view file per pane, theme.
