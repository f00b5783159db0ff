"""Breaks a real pair of servers in every way while documents change and people read.

python -m loadtests.chaos --minutes 20 --seed 7

run.py        the whole run on one screen: start, break, heal, last sync, verify, judge
servers.py    Elasticsearch and Milvus to start, kill and start again
proxy.py      a TCP proxy in front of each that can be cut, also in mid-request
schedule.py   what is broken when, from the seed
pages.py      the documents, and what a text tells about where it is from
sync.py       brings documents in line with their pages through the commit protocol
watch.py      stores that tell of every call
journal.py    what writers and readers did when, as lines of JSON
writer.py     a process that edits, deletes and relabels
reader.py     a process that searches all the time through the real search path
judge.py      holds every read against the journal of the writers
report.py     the counts, as text and JSON
"""
