"""Every table, figure and ablation of the paper: declared, measured, judged, published."""
