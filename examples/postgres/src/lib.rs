//! The programs stand beside this folder, and a test runs them.
