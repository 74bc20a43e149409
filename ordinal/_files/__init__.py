"""Files: tables that are read, archives of models, and safe writing.

table    tables in CSV and Parquet files
cells    cells of text as numbers, categories and missing values
readers  readers of CSV and Parquet by optional libraries
chunks   tables of files that are larger than memory
archive  arrays and records in one file
writing  files that are written whole or not at all

Imports `_input`. Every package above may import it.
"""
