"""The work of bk-fill: requests for new items that would fill gaps, the candidates that come back, and their choice.

scale      which items are the benchmark, and its scale for all others
plan       where new items should lie, and which items to start from
prompt     a plan in words for a language model
ids        what a request's custom_id says of it
lines      lines of JSON as clients of the batch format leave them
replies    what a line of replies holds
answer     the JSON object in a reply's text
votes      judgements of validity
items      questions and answers of the items
copies     texts that are the same but for case, spaces and punctuation
requests   a fit -> requests
collect    replies -> candidates
choice     calibrated candidates -> the items to add
choose     the same for tables, as a document
views      what people see
"""
