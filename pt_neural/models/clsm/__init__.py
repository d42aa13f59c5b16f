"""DSSM, CLSM and LSA: the models of the CLSM paper that represent queries and documents by vectors."""
