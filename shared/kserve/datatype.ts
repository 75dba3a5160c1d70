/** KServe v2 data types: bytes per element on the wire (0: length-prefixed) and the name model_config.proto uses. */
export const datatypes = {
  BOOL: { bytes: 1, config: 'TYPE_BOOL' },
  UINT8: { bytes: 1, config: 'TYPE_UINT8' },
  UINT16: { bytes: 2, config: 'TYPE_UINT16' },
  UINT32: { bytes: 4, config: 'TYPE_UINT32' },
  UINT64: { bytes: 8, config: 'TYPE_UINT64' },
  INT8: { bytes: 1, config: 'TYPE_INT8' },
  INT16: { bytes: 2, config: 'TYPE_INT16' },
  INT32: { bytes: 4, config: 'TYPE_INT32' },
  INT64: { bytes: 8, config: 'TYPE_INT64' },
  FP16: { bytes: 2, config: 'TYPE_FP16' },
  BF16: { bytes: 2, config: 'TYPE_BF16' },
  FP32: { bytes: 4, config: 'TYPE_FP32' },
  FP64: { bytes: 8, config: 'TYPE_FP64' },
  BYTES: { bytes: 0, config: 'TYPE_STRING' },
} as const;

export type Datatype = keyof typeof datatypes;

const byConfigName = new Map<string, Datatype>(
  Object.entries(datatypes).map(([name, row]) => [row.config, name as Datatype]),
);

/** `TYPE_FP32` → `FP32`; undefined for `TYPE_INVALID` and anything unknown. */
export const fromConfigName = (name: string): Datatype | undefined => byConfigName.get(name);
