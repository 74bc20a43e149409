"""Files: tables that are read, and safe writing.

table    tables in CSV and Parquet files
readers  cells of text as numbers and categories; pyarrow for Parquet and large CSV
chunks   tables of files that are larger than memory
writing  files that are written whole or not at all

Imports `_input`. Every package above may import it.
"""
