// Runs an entry of the bundle with the arguments of this process; see node.cjs.
const { inBundle } = require('./bundled.cjs');

exports.run = (entry) => {
  try {
    process.argv.splice(2, 0, '--enable-source-maps', inBundle(entry));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  require('./node.cjs');
};
