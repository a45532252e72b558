# Labels by a consensus method of clue: see benchmarks.record.scale.
suppressPackageStartupMessages(library(clue))

given <- commandArgs(trailingOnly = TRUE)
n <- as.integer(given[3])
m <- as.integer(given[4])
cat(sprintf('{"R": "%s", "clue": "%s"}\n', getRversion(), packageVersion("clue")))
base <- matrix(readBin(given[1], "integer", n * m, size = 2L), n)
base[base < 0L] <- NA
ensemble <- cl_ensemble(list = lapply(seq_len(m), function(j) as.cl_hard_partition(base[, j] + 1L)))
set.seed(0)
found <- cl_consensus(ensemble, given[6], control = list(k = as.integer(given[5])))
writeBin(as.integer(cl_class_ids(found)), given[2], size = 4L)
