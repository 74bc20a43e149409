/* A function for each kernel, which calls it: callgrind counts by function. SLOTS lists
   them as SLOT(kernel__module__name) ...; all must stay functions of their own. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <valgrind/callgrind.h>

#define SLOT(name) \
  __attribute__((noipa)) PyObject *name(PyObject *kernel, PyObject *args, PyObject *options) { \
    PyObject *volatile result = PyObject_Call(kernel, args, options); \
    return result; \
  }
SLOTS

#undef SLOT
#define SLOT(name) {#name, (PyCFunction)(void (*)(void))name, METH_VARARGS | METH_KEYWORDS, NULL},
static PyMethodDef slots[] = {SLOTS{NULL}};

/* bound(name, kernel): the slot of that name, which calls the kernel. */
static PyObject *bound(PyObject *self, PyObject *args) {
  const char *name;
  PyObject *kernel;
  if (!PyArg_ParseTuple(args, "sO", &name, &kernel)) return NULL;
  for (PyMethodDef *slot = slots; slot->ml_name; slot++)
    if (strcmp(slot->ml_name, name) == 0) return PyCFunction_New(slot, kernel);
  return PyErr_Format(PyExc_KeyError, "%s", name);
}

static PyObject *begin(PyObject *self, PyObject *none) {
  CALLGRIND_START_INSTRUMENTATION;
  Py_RETURN_NONE;
}

/* end_of(case): write down what was counted since the case before. */
static PyObject *end_of(PyObject *self, PyObject *name) {
  const char *text = PyUnicode_AsUTF8(name);
  if (text == NULL) return NULL;
  CALLGRIND_DUMP_STATS_AT(text);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
  {"bound", bound, METH_VARARGS, NULL}, {"begin", begin, METH_NOARGS, NULL},
  {"end_of", end_of, METH_O, NULL}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "slots", NULL, -1, methods};
PyMODINIT_FUNC PyInit_slots(void) { return PyModule_Create(&module); }
