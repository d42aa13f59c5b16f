"""The public names, as type checkers and editors see them; ``__init__.py`` loads them on first use."""

from pt_neural import cluster as cluster
from pt_neural import experiment as experiment
from pt_neural.catalogue import rankers as rankers
from pt_neural.cluster.on_ray import on_ray as on_ray
from pt_neural.datasets.corpus_shards import CorpusShards as CorpusShards
from pt_neural.embeddings.phrases import PhraseJoiner as PhraseJoiner
from pt_neural.embeddings.spaces import EmbeddingSpaces as EmbeddingSpaces
from pt_neural.experiment.alpha import tune_alpha as tune_alpha
from pt_neural.explain.door import explain as explain
from pt_neural.lucene.lucene_index import LuceneIndex as LuceneIndex
from pt_neural.lucene.lucene_shards import LuceneShards as LuceneShards
from pt_neural.lucene.search.lce import LatentConceptExpansion as LatentConceptExpansion
from pt_neural.models.clsm.clsm import CLSM as CLSM
from pt_neural.models.clsm.dssm import DSSM as DSSM
from pt_neural.models.clsm.lsa import LSA as LSA
from pt_neural.models.convolutions.arc import ARCI as ARCI
from pt_neural.models.convolutions.arc import ARCII as ARCII
from pt_neural.models.convolutions.match_pyramid import MatchPyramid as MatchPyramid
from pt_neural.models.convolutions.pacrr import PACRR as PACRR
from pt_neural.models.desm import DESM as DESM
from pt_neural.models.duet.drmm import DRMM as DRMM
from pt_neural.models.duet.duet import Duet as Duet
from pt_neural.models.duet.duet import DuetDistributed as DuetDistributed
from pt_neural.models.duet.duet import DuetLocal as DuetLocal
from pt_neural.models.kernels.conv_knrm import ConvKNRM as ConvKNRM
from pt_neural.models.kernels.knrm import KNRM as KNRM
from pt_neural.models.kernels.tk import TK as TK
from pt_neural.models.match_tensor.match_tensor import MatchTensor as MatchTensor
from pt_neural.models.match_tensor.match_tensor import MatchTensorSSM as MatchTensorSSM
from pt_neural.models.match_tensor.ssm import SSM as SSM
from pt_neural.models.pooling.anmm import ANMM as ANMM
from pt_neural.models.pooling.drmmtks import DRMMTKS as DRMMTKS
from pt_neural.models.pooling.mv_lstm import MVLSTM as MVLSTM
from pt_neural.models.pooling.posit_drmm import POSITDRMM as POSITDRMM
from pt_neural.models.ssi.rocchio import Rocchio as Rocchio
from pt_neural.models.ssi.ssi import SSI as SSI
from pt_neural.models.ssi.tf_idf import TFIDF as TFIDF
from pt_neural.models.topics.bltm import BLTM as BLTM
from pt_neural.models.topics.lda import LDA as LDA
from pt_neural.models.topics.plsa import PLSA as PLSA
from pt_neural.models.topics.topic_model import TopicCosine as TopicCosine
from pt_neural.models.translation.phrases import PhraseTranslation as PhraseTranslation
from pt_neural.models.translation.words import WordTranslation as WordTranslation
from pt_neural.rankers.mixture import Mixture as Mixture
from pt_neural.text.forward_index import ForwardIndex as ForwardIndex
from pt_neural.training.pseudo_queries import pseudo_queries as pseudo_queries
from pt_neural.training.settings import Training as Training
from pt_neural.verification import verify as verify

__version__: str
CDSSM = CLSM
