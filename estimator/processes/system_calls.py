"""System calls by number, grouped by what they would let a process do.

    name -> its number on x86_64 and on aarch64

Pure data, of Linux 6.18. None where an architecture has no such call.
Source: arch/x86/entry/syscalls/syscall_64.tbl of Linux, and scripts/syscall.tbl for aarch64.
"""

from __future__ import annotations

from collections.abc import Mapping

Numbers = tuple[int | None, int | None]

NEWEST = 469
"""file_setattr. Who wrote this knew no call after it."""

SOCKETS: Mapping[str, Numbers] = {
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
}
"""The ways to a socket, and those past a filter."""

NETWORK: Mapping[str, Numbers] = {
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
"""What is done with a socket: a datagram socket of a pair reaches any other by its path."""

PROGRAMS: Mapping[str, Numbers] = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "uselib": (134, None),
}
"""Other programs."""

PROCESSES: Mapping[str, Numbers] = {
    "fork": (57, None),
    "vfork": (58, None),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "setrlimit": (160, 164),
}
"""New processes, signals, and what changes how others run."""

TIMERS: Mapping[str, Numbers] = {
    "setitimer": (38, 103),
    "alarm": (37, None),
    "timer_create": (222, 107),
}
"""Signals at a time: with them a process takes away the timer that is to end it."""

MEMORY_OF_OTHERS: Mapping[str, Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "userfaultfd": (323, 282),
}
"""The memory of other processes."""

FILES: Mapping[str, Numbers] = {
    "creat": (85, None),
    "truncate": (76, 45),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
}
"""Changes of files and folders; files opened by handle, or with flags a filter cannot see."""

MOUNTS: Mapping[str, Numbers] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "unshare": (272, 97),
    "setns": (308, 268),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
}
"""Mounts, roots and namespaces."""

IDENTITY: Mapping[str, Numbers] = {
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    "setgroups": (116, 159),
    "capset": (126, 91),
    "personality": (135, 92),
    "seccomp": (317, 277),
    "lsm_set_self_attr": (460, 460),
}
"""Who a process is."""

SHARED: Mapping[str, Numbers] = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_notify": (244, 184),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_getsetattr": (245, 185),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "memfd_secret": (447, 447),
}
"""Memory, queues and keys that others see or that stay."""

KERNEL: Mapping[str, Numbers] = {
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "sysfs": (139, None),
    "ustat": (136, None),
    "_sysctl": (156, None),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "io_pgetevents": (333, 292),
    "io_getevents": (208, 4),
    "io_cancel": (210, 3),
    "io_destroy": (207, 1),
    "splice": (275, 76),
    "tee": (276, 77),
    "vmsplice": (278, 75),
}
"""The kernel itself."""

CHECKED: Mapping[str, Numbers] = {
    "open": (2, None),
    "openat": (257, 56),
    "clone": (56, 220),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "sendto": (44, 206),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "sched_setaffinity": (203, 122),
    "setpriority": (141, 140),
}
"""Allowed for some arguments."""

UNSEEN: Mapping[str, Numbers] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
}
"""Their arguments lie in memory, which no filter sees: libraries do without them."""
