"""Many clusters, many questions, several schedulers: the grid of them, worked at by Dask, as a Parquet dataset."""
