"""Tests of venture_lite; a package, so that modules of the same name in different folders do not collide."""
