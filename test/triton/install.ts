import path from 'node:path';
import { installTriton } from '../../infra/pool/triton/install.ts';

/** Where Triton is kept between runs. */
export const folder = process.env.AURICLE_TRITON ?? path.resolve(import.meta.dirname, '../../.auricle/triton');

/** Before all files, in the process that may reach a package index. */
export async function setup(): Promise<void> {
  await installTriton({ folder, say: (line) => console.log(`triton: ${line}`) });
}
