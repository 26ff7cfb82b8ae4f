"""Records of all HTTP operations, by what they operate on."""
