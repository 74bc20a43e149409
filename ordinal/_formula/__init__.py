"""Coding of tables as the columns of a design: formulas, contrasts, splines and dates.

coding       variables and terms of a table as numeric columns, in a fit and again at
             prediction: categories, missing values, splines, products
formulas     formulas in R's syntax as terms
expressions  arithmetic of columns, stored as text
splines      smooth terms
dates        numbers that are made of a column of dates

Linear models and `preprocessing` store the same `Coding`.
"""
