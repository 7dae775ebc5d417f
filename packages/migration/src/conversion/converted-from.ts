/** Annotation of a PersistentVolume that a conversion has made: the name of the one before. */
export const convertedFromAnnotation = "longshore.dev/converted-from";
