import { z } from 'zod';
import { run } from './run.ts';

/** A Python that Triton's Python backend can be given. */
export interface Python {
  /** Absolute path of the interpreter. */
  readonly executable: string;
  /** For example `3.11`. */
  readonly version: string;
  /** The shared library that the backend's stub is linked with. */
  readonly library: string;
}

/** The wheel has stubs for more; ONNX Runtime needs 3.11, numpy 1 ends with 3.12. */
const VERSIONS = ['3.11', '3.12'];

// Distributions put the library in different places, and a Python without one has the name of its archive there.
const PROBE = `
import glob, importlib.util, json, os, sys, sysconfig
version = "%d.%d" % sys.version_info[:2]
get = sysconfig.get_config_var
folders = [get("LIBDIR"), os.path.join(get("LIBDIR") or "", get("MULTIARCH") or ""), os.path.join(sys.base_prefix, "lib"), get("LIBPL")]
found = [os.path.realpath(file) for folder in folders if folder for file in glob.glob(os.path.join(folder, "libpython" + version + ".so.1.0"))]
print(json.dumps({"executable": sys.executable, "version": version, "bits": sys.maxsize.bit_length() + 1,
  "library": found[0] if found else None, "pip": importlib.util.find_spec("pip") is not None}))
`;

const probed = z.object({
  executable: z.string(),
  version: z.string(),
  bits: z.number(),
  library: z.string().nullable(),
  pip: z.boolean(),
});

function complaint({ version, bits, library, pip }: z.infer<typeof probed>): string | undefined {
  if (!VERSIONS.includes(version)) return `is ${version}, wanted is ${VERSIONS.join(' or ')}`;
  if (bits !== 64) return 'is not for 64 bits';
  if (library === null) return `has no shared libpython${version}.so.1.0`;
  return pip ? undefined : 'has no pip';
}

function readProbe(output: string): z.infer<typeof probed> | undefined {
  try {
    return probed.parse(JSON.parse(output));
  } catch {
    return undefined;
  }
}

/** The first of `candidates` that will do, or what is wrong with each. */
export async function findPython(
  candidates: readonly string[] = ['python3', ...VERSIONS.map((version) => `python${version}`)],
): Promise<Python | { problem: string }> {
  const problems: string[] = [];
  for (const name of candidates) {
    const answer = await run(name, ['-c', PROBE]);
    if (!answer.ok) {
      problems.push(`${name} ${answer.missing ? 'is not there' : 'does not run'}`);
      continue;
    }
    const python = readProbe(answer.output);
    if (!python) {
      problems.push(`${name} is no Python`);
      continue;
    }
    const wrong = complaint(python);
    if (wrong === undefined && python.library !== null) return { ...python, library: python.library };
    problems.push(`${name} ${wrong}`);
  }
  return { problem: `no Python that will do: ${problems.join('; ')}` };
}
