# Written by docs/lists.py.
from consilience.consensus.base import LabelMethod as LabelMethod
from consilience.consensus.bce import BCE as BCE
from consilience.consensus.ceshl import CESHL as CESHL
from consilience.consensus.cspa import CSPA as CSPA
from consilience.consensus.dal import DAL as DAL
from consilience.consensus.drec import DREC as DREC
from consilience.consensus.eac import EAC as EAC
from consilience.consensus.eccms import ECCMS as ECCMS
from consilience.consensus.ecpcs import ECPCS as ECPCS
from consilience.consensus.hbgf import HBGF as HBGF
from consilience.consensus.hgpa import HGPA as HGPA
from consilience.consensus.kc import KC as KC
from consilience.consensus.kcc import KCC as KCC
from consilience.consensus.lwea import LWEA as LWEA
from consilience.consensus.lwgp import LWGP as LWGP
from consilience.consensus.m2vec import M2VEC as M2VEC
from consilience.consensus.mcla import MCLA as MCLA
from consilience.consensus.mixtureconsensus import MixtureConsensus as MixtureConsensus
from consilience.consensus.mvec import MVEC as MVEC
from consilience.consensus.nmfc import NMFC as NMFC
from consilience.consensus.pce import PCE as PCE
from consilience.consensus.pta import PTA as PTA
from consilience.consensus.ptgp import PTGP as PTGP
from consilience.consensus.rce import RCE as RCE
from consilience.consensus.rsec import RSEC as RSEC
from consilience.consensus.sccbg import SCCBG as SCCBG
from consilience.consensus.sec import SEC as SEC
from consilience.consensus.spce import SPCE as SPCE
from consilience.consensus.trce import TRCE as TRCE
from consilience.consensus.usenc import USENC as USENC

__all__: list[str]
