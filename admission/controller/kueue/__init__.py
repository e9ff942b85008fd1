"""What Kueue's objects say, and what our AdmissionCheck answers. Pure: asks and writes nothing.

    Workload, ClusterQueue, ResourceFlavors, Judgement -> Decision

Kueue v1beta2 is read, and v1beta1 where that alone is served: what is read here has the same names
and places in both. Source: kubernetes-sigs/kueue v0.19.2 `apis/kueue/v1beta1`, `v1beta2`
(`workload_types.go`, `clusterqueue_types.go`, `resourceflavor_types.go`).
"""
