"""The kubelet's file formats: pure codecs between bytes and the model, with their checksums.

One file per format. Nothing here opens a file, knows a path or asks a peer.
"""
