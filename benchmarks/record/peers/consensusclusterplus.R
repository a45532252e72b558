# Labels by ConsensusClusterPlus, from columns: see benchmarks.record.scale.
suppressPackageStartupMessages(library(ConsensusClusterPlus))

given <- commandArgs(trailingOnly = TRUE)
n <- as.integer(given[3])
k <- as.integer(given[5])
cat(sprintf('{"R": "%s", "ConsensusClusterPlus": "%s"}\n', getRversion(), packageVersion("ConsensusClusterPlus")))
columns <- matrix(readBin(given[1], "double", n * as.integer(given[4])), n)
pdf(NULL) # it draws whether asked to or not: nowhere is the cheapest place
found <- ConsensusClusterPlus(
  t(columns), maxK = k, reps = 100, pItem = 0.8, clusterAlg = given[6], distance = "euclidean", seed = 0
)
writeBin(as.integer(found[[k]]$consensusClass), given[2], size = 4L)
