/** Names of the controllers of distributions below `longshore run`. */
export const distributionVerbs = ["migration-controller", "feature-gate-operator"] as const;
