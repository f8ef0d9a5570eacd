"""_check: the checks around a kernel that `kernels.check_mode` asks for."""
