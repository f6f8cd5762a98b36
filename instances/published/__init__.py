"""Numbers published by the papers' authors: LuMorph's figures, and the communication of its three models.

Source   the vector graphics of the paper's technical report, and the logs ``logs/MODEL/comms_N.log`` of
         https://github.com/lumorphnetwork/code, commit 53cbbf710c3f0e9ef6ba7b525d5d832039914d70 (2023-09-23)
Licence  the repository has no licence file; the tables contain only numbers, in our own format

``lumorph_figures.csv``: a point per row, read from the drawing to 0.01 % of an axis. Units by figure:

    3    x GPUs, y time to compute routes [s]
    5    left: x GPUs, y circuits on the busiest edge; right_256_gpus: x waveguides per edge, y circuits in excess
    6    x GPUs, y reconfigurations of an all-reduce; panels by number of waveguides per edge
    7    x buffer [MiB], y time of an all-reduce [us]; panels by number of GPUs
    8a   x reconfiguration delay [ns], y time of an all-reduce on 256 GPUs [us]
    8b   x rate of a laser [GB/s], y time of an all-reduce on 256 GPUs [us]; series by buffer size
    10   x size of an all-reduce [byte], y share of calls up to this size
    11   x GPUs, y training throughput [samples/s]; panels by model

``lumorph_calls.csv``: communication of one iteration, in the order of the logs. ``gpus`` is the number of GPUs, ``any``
where the logs are the same for all (bert, inception); ``bytes`` is the buffer of one GPU, or one transfer. By ``kind``:

    all-reduce  ``repeat`` equal calls in a row, in each of which all GPUs take part
    local       one call for each GPU of ``sources``, with no other participant: no data is sent
    transfer    layer to layer: every GPU of ``sources`` sends to every GPU as input of operator ``layer``, and receives
                as much in the backward pass; a GPU listed twice sends twice

Transfers of a GPU to itself, which the logs also list, are omitted. ``sources``: ``0-3 7`` stands for 0 1 2 3 7.
"""
