"""The page of `kdacheck report`: inputs -> check, bench -> plots -> html, markdown."""
