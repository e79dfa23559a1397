"""Makers of exchangeable random procedures, whose parameters are integrated out."""
